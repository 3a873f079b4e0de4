local kept = {}

function event()
  while true do
    kept[#kept + 1] = string.rep("x", 1000000) .. #kept
  end
end
