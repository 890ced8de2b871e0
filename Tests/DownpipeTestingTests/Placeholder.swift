// The tests of DownpipeTesting go here.
