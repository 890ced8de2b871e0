// The tests of DownpipeSQLite go here.
