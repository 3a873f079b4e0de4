-- Ends its thread with the fourth event.

local events = 0

function thread_init()
  con = sysbench.sql.driver():connect()
end

function event()
  events = events + 1
  if events > 3 then return true end
  con:query("SELECT 1")
end
