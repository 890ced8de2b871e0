extension AppleResumeData {
  /// The known keys. Values are strings unless noted otherwise.
  enum Key {
    static let url = "NSURLSessionDownloadURL"
    /// An integer.
    static let bytesReceived = "NSURLSessionResumeBytesReceived"
    static let entityTag = "NSURLSessionResumeEntityTag"
    /// The Last-Modified field of the answer, unparsed.
    static let serverDate = "NSURLSessionResumeServerDownloadDate"
    /// An integer.
    static let version = "NSURLSessionResumeInfoVersion"
    /// Since version 2.
    static let fileName = "NSURLSessionResumeInfoTempFileName"
    /// Version 1.
    static let localPath = "NSURLSessionResumeInfoLocalPath"
    /// Data: an archived request.
    static let currentRequest = "NSURLSessionResumeCurrentRequest"
    /// Data: an archived request.
    static let originalRequest = "NSURLSessionResumeOriginalRequest"
    /// The range that the app requested with a Range header, without `bytes=`.
    static let byteRange = "NSURLSessionResumeByteRange"

    static let all: Set<String> = [
      url, bytesReceived, entityTag, serverDate, version, fileName, localPath, currentRequest, originalRequest,
      byteRange,
    ]
  }
}
