-- Commands: one for each thread, one that runs another, and one that says that it failed.

local begun = 0

sysbench.cmdline.commands = {
  each = { function()
    begun = begun + 1
    print(string.format("each: thread %d of %d, state %d, %s", sysbench.tid, sysbench.opt.threads,
      begun, sysbench.cmdline.command))
  end, sysbench.cmdline.PARALLEL_COMMAND },
  once = { function()
    begun = begun + 1
    if not sysbench.cmdline.command_parallel("each") or sysbench.cmdline.command_parallel("once") then
      error("which command is parallel")
    end
    if not sysbench.cmdline.command_defined("fails") or sysbench.cmdline.command_defined("odd") then
      error("which command is there")
    end
    print("once: state " .. begun)
    sysbench.cmdline.call_command("each")
  end },
  fails = { function() return false end },
}

function thread_init()
  if begun ~= 0 then error("a client has the state of a command") end
  con = sysbench.sql.driver():connect()
end

function event() con:query("SELECT 1") end
