"""Construction of robots: builder, checks, editing, reduction, robots as data, parameters, random trees."""
