-- Runs programs.

function event()
  local pipe = io.popen("echo from a pipe")
  if pipe:read("*l") ~= "from a pipe" then error("popen") end
  pipe:close()
  os.execute("echo from a shell")
  sysbench.sql.driver():connect():query("SELECT 1")
  for _ = 1, 3 do os.execute("sleep 0.05") end
end
