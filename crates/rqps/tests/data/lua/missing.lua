function thread_init() con = sysbench.sql.driver():connect() end

function event()
  con:query("SELECT * FROM no_such_table")
end
