import DownpipeCore
import Foundation

/// A finished file in the inbox, and what is known of it.
struct InboxEntry: Hashable, Sendable {
  let name: String
  let tag: TransferTag
  let answer: FinishedAnswer
}

/// The folder in which finished files wait until a download takes them: the system deletes its own copy as soon as it
/// has told of it, and the app may be gone before anybody asks.
///
/// A file and its note lie side by side, `downpipe-ID-RANDOM.body` and `….note`. The note is written first, so a
/// body without one, like a note without a body, is the rest of something that was cut short.
struct BackgroundInbox: Sendable {
  let path: String
  /// Files that nobody has asked for in this time belong to downloads that are gone.
  static let timeLimit: TimeInterval = 7 * 86_400
  private static let maximumNote = 1 << 20

  private struct Note: Codable {
    var version = 1
    var tag: TransferTag
    var answer: FinishedAnswer
    /// Seconds since 1970.
    var date: Double
  }

  /// Makes the folder if it is missing.
  /// - Throws: ``DownloadError`` with `.permission`, `.noSpace` or `.storage`.
  init(_ path: String) throws(DownloadError) {
    self.path = path
    do {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    } catch {
      throw DownloadError(inbox: error, "the inbox of background transfers \(path) cannot be made")
    }
  }

  /// Where the inbox of a session is: a folder of its own below `root`, or in the user's folder for caches.
  ///
  /// - Throws: ``DownloadError`` with `.invalidPipeline` for an identifier that cannot name a folder.
  static func path(of identifier: String, below root: String?) throws(DownloadError) -> String {
    let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.".utf8)
    let name = identifier.utf8.prefix(300).enumerated().map { index, byte in
      plain.contains(byte) && (index > 0 || byte != UInt8(ascii: "."))
        ? String(UnicodeScalar(byte)) : "%" + String(Int(byte) + 256, radix: 16, uppercase: true).dropFirst()
    }.joined()
    guard !name.isEmpty, name.utf8.count <= 240 else {
      throw DownloadError(
        .invalidPipeline, "the identifier of a background session has 1 to 240 bytes: use one like org.example.films")
    }
    if let root { return (root as NSString).expandingTildeInPath + "/" + name }
    let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first ?? .temporaryDirectory
    return caches.appending(path: "downpipe/\(name)", directoryHint: .notDirectory).path(percentEncoded: false)
  }

  /// The path of a file.
  func body(_ name: String) -> String { "\(path)/\(name).body" }
  private func note(_ name: String) -> String { "\(path)/\(name).note" }

  /// Moves a file in.
  /// - Returns: its name here.
  /// - Throws: ``DownloadError`` with `.permission`, `.noSpace` or `.storage`; nothing is left behind then.
  func keep(_ temporary: String, _ tag: TransferTag, _ answer: FinishedAnswer, now: Date = Date()) throws(DownloadError)
    -> String
  {
    let readable = String(
      String.UnicodeScalarView(
        tag.id.rawValue.unicodeScalars.lazy.filter { $0.isASCII && $0.properties.isAlphabetic || ("0"..."9") ~= $0 }
          .prefix(40)))
    let name = "downpipe-\(readable)-\(DownloadID().rawValue)"
    do {
      let content = try JSONEncoder().encode(Note(tag: tag, answer: answer, date: now.timeIntervalSince1970))
      try content.write(to: URL(filePath: note(name)))
      try FileManager.default.moveItem(atPath: temporary, toPath: body(name))
    } catch {
      remove(name)
      throw DownloadError(inbox: error, "the finished file cannot be kept in \(path)")
    }
    return name
  }

  /// Deletes a file and its note, as far as they are there.
  func remove(_ name: String) {
    // The body first: should the process end here, the note is found alone and goes, too.
    try? FileManager.default.removeItem(atPath: body(name))
    try? FileManager.default.removeItem(atPath: note(name))
  }

  /// The size of a file; `nil` when it is gone.
  func size(_ name: String) -> Int64? { Self.regularFile(body(name))?.size }

  /// What is here. Of what is ours, everything that cannot be used is deleted: halves, notes that cannot be read,
  /// files that are too old. Other files are left alone.
  func load(now: Date = Date()) -> [InboxEntry] {
    var names: Set<String> = []
    for file in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
      guard file.hasPrefix("downpipe-"), file.hasSuffix(".body") || file.hasSuffix(".note") else { continue }
      names.insert(String(file.dropLast(5)))
    }
    var entries: [InboxEntry] = []
    for name in names.sorted() {
      if let note = readNote(name), Self.regularFile(body(name)) != nil,
        abs(now.timeIntervalSince1970 - note.date) <= Self.timeLimit
      {
        entries.append(InboxEntry(name: name, tag: note.tag, answer: note.answer))
      } else {
        remove(name)
      }
    }
    return entries
  }

  private func readNote(_ name: String) -> Note? {
    guard let file = Self.regularFile(note(name)), file.size <= Self.maximumNote,
      let content = try? Data(contentsOf: URL(filePath: note(name))),
      let note = try? JSONDecoder().decode(Note.self, from: content),
      note.version == 1, note.tag.isValid, note.answer.bringsBytes
    else { return nil }
    return note
  }

  /// A link, a folder or a pipe is none of ours.
  private static func regularFile(_ path: String) -> (size: Int64, Void)? {
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
      attributes[.type] as? FileAttributeType == .typeRegular, let size = attributes[.size] as? NSNumber
    else { return nil }
    return (size.int64Value, ())
  }
}

extension DownloadError {
  /// What Foundation reports of the inbox.
  fileprivate init(inbox error: any Error, _ text: String) {
    let code: Code =
      switch (error as? CocoaError)?.code {
      case .fileWriteOutOfSpace: .noSpace
      case .fileWriteNoPermission, .fileReadNoPermission, .fileWriteVolumeReadOnly, .fileWriteFileExists: .permission
      default: .storage
      }
    self.init(code, "\(text): \((error as NSError).localizedDescription)", cause: error)
  }
}
