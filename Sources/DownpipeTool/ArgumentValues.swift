public import ArgumentParser
public import Downpipe

// Types of the framework as values of options; their raw values are the words on the command line.

extension ConflictPolicy: ExpressibleByArgument {}
extension DownloadState.Phase: ExpressibleByArgument {}
