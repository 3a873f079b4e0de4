-- Tells which rights the process has, and checks what a script may still do: files beside it, files
-- of its own, SQL.

local beside = dofile("rights_beside.lua")

local function line_of(path, word)
  for line in io.lines(path) do
    if line:find(word, 1, true) then return (line:gsub("%s+", " ")) end
  end
end

local function all_of(path)
  local file = io.open(path, "rb")
  local text = file:read("*a")
  file:close()
  return text
end

local connection

function prepare()
  connection = sysbench.sql.driver():connect()
  connection:query("CREATE TABLE rights (id INTEGER)")
  local file = io.open("own.txt", "w")
  file:write("written")
  file:close()
  print("own file: " .. all_of("own.txt"))
end

function thread_init()
  connection = sysbench.sql.driver():connect()
  print(line_of("/proc/self/status", "Uid:"))
  print(line_of("/proc/self/status", "Groups:"))
  print(line_of("/proc/self/status", "NoNewPrivs:"))
  print("beside: " .. beside)
  print("data beside: " .. tostring(io.open("rights_beside.lua") ~= nil))
  print("secret: " .. tostring(os.getenv("RQPS_TEST_SECRET")))
  print("path: " .. tostring(os.getenv("PATH") ~= nil))
  print("environment: " .. tostring(all_of("/proc/self/environ"):find("RQPS_TEST_SECRET", 1, true)))
  print("input: " .. tostring(io.read()))
end

function event()
  connection:query("INSERT INTO rights VALUES (1)")
end
