// The tests of DownpipeChecksum go here.
