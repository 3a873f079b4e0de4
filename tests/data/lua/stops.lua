function event()
  return true
end
