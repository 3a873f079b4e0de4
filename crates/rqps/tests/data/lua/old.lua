-- A script for sysbench 0.5: options are globals.

function prepare()
  db_connect()
  db_query("CREATE TABLE old (id INTEGER)")
end

function thread_init()
  db_connect()
end

function event()
  if db_driver ~= "sqlite" then error("db_driver is " .. tostring(db_driver)) end
  if num_threads ~= 1 or threads ~= 1 then error("num_threads is " .. tostring(num_threads)) end
  if max_requests ~= 0 then error("max_requests is " .. tostring(max_requests)) end
  if type(max_time) ~= "number" then error("max_time is " .. tostring(max_time)) end
  if sb_rand("3", "3") + sb_rand_uniform(4, "4") ~= 7 then error("texts are no numbers") end
  if type(debug) ~= "table" then error("debug is " .. tostring(debug)) end
  db_query("SELECT count(*) FROM old")
end
