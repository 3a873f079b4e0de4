walk_module_says = "hello"
