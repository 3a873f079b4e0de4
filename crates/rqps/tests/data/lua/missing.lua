function thread_init() con = sysbench.sql.driver():connect() end

function event()
  con:query(again and "SELECT * FROM no_such_table" or "SELECT 1"); again = true
end
