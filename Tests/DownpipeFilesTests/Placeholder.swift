// The tests of DownpipeFiles go here.
