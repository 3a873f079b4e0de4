-- Reports on its own, and runs commands around the step.

sysbench.cmdline.options = { word = { "A text", "none" } }
sysbench.cmdline.commands = {
  prepare = { function() sysbench.sql.driver():connect():query("CREATE TABLE one (id INTEGER)") end },
  look = { function()
    local count = sysbench.sql.driver():connect():query_row("SELECT count(*) FROM one")
    print("rows: " .. count)
  end },
}

function thread_init()
  con = sysbench.sql.driver():connect()
  -- A wait needs no program.
  if os.execute("sleep 0.01") ~= 0 then error("sleep failed") end
end

function event()
  con:query("INSERT INTO one VALUES (1)")
end

function sysbench.hooks.report_intermediate(stat)
  if stat.writes ~= stat.events then error("writes " .. stat.writes) end
  sysbench.report_csv(stat)
  sysbench.report_json(stat)
end

function sysbench.hooks.report_cumulative(stat)
  if stat.latency_max < stat.latency_min then error("latencies") end
  sysbench.report_default(stat)
  print("events: " .. stat.events)
end
