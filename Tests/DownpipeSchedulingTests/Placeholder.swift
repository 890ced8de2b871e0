// The tests of DownpipeScheduling go here.
