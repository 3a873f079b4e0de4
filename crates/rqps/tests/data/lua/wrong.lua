function event()
  return 1 + nil
end
