extension AppleResumeData {
  /// The keys that are known. The values are strings unless said otherwise.
  enum Key {
    static let url = "NSURLSessionDownloadURL"
    /// An integer.
    static let bytesReceived = "NSURLSessionResumeBytesReceived"
    static let entityTag = "NSURLSessionResumeEntityTag"
    /// The answer's Last-Modified, as the server wrote it.
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
    /// What the task's own Range header asks for, without `bytes=`.
    static let byteRange = "NSURLSessionResumeByteRange"

    static let all: Set<String> = [
      url, bytesReceived, entityTag, serverDate, version, fileName, localPath, currentRequest, originalRequest,
      byteRange,
    ]
  }
}
