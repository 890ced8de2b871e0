// The tests of DownpipeCore go here.
