// The tests of DownpipeGzip go here.
