public import ArgumentParser
public import Downpipe

// The raw values of these types are the words on the command line.

extension ConflictPolicy: ExpressibleByArgument {}
extension DownloadState.Phase: ExpressibleByArgument {}
extension GateSettings.Window: ExpressibleByArgument {
  init?(argument: String) { self.init(argument) }
}

extension ByteSize: ExpressibleByArgument {
  init?(argument: String) { self.init(argument) }
}

extension PipelineSettings.Transport: ExpressibleByArgument {}
