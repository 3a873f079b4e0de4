return "found"
