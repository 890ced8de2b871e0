import Downpipe
import DownpipeAppleResumeData
import Foundation

/// Resume data like that of URLSession.
enum AppleResumeSample {
  static func data(url: URL, bytes: Int64, tag: String, file: URL) throws -> Data {
    try AppleResumeData(
      url: url, bytesReceived: bytes, entityTag: EntityTag(tag), localFile: file.lastPathComponent, format: .binary,
      isArchived: true
    ).data()
  }
}
