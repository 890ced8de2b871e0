// The tests of EndToEnd go here.
