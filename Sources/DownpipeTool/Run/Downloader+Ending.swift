import Downpipe

extension Downloader {
  /// Shuts down, and warns of what is left behind.
  func end() async {
    let report = await shutdown()
    if !report.isComplete { OutputFile.warn("\(report)") }
  }
}
