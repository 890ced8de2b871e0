// The tests of DownpipeHTTP go here.
