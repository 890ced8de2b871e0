// The tests of DownpipeURLSession go here.
