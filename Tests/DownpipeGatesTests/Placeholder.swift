// The tests of DownpipeGates go here.
