public import DownpipeCore

extension DownloadError.Code {
  /// Resume data of URLSession is damaged or contains an invalid value.
  public static let resumeData = DownloadError.Code("resumeData")
}

extension DownloadError {
  /// An error with the code ``Code/resumeData`` and the message prefix that all of them share.
  static func resumeData(_ what: String) -> DownloadError {
    DownloadError(.resumeData, "the resume data cannot be used: \(what)")
  }

  /// Calls `body` and converts its error.
  static func convert<Value>(_ body: () throws(PropertyListError) -> Value) throws(DownloadError) -> Value {
    do { return try body() } catch { throw .resumeData(error.message) }
  }
}
