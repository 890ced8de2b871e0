#if LIBCURL
  import DownpipeCore
  import DownpipeDigest
  import DownpipeHTTP
  import DownpipePOSIX
  import Foundation
  import Synchronization

  /// One upload in parts, new or from an earlier run.
  ///
  /// Parts that an earlier run has sent are compared with the bytes, by the checksums of the storage, and not sent again: the
  /// upload of a process that was killed continues, also on another machine, and a file that has changed meanwhile costs only
  /// the parts that differ.
  final class PartUpload: Sendable {
    let uploads: MultipartUploads
    let note: UploadNote
    let id: String
    let plan: PartPlan
    /// The parts of earlier runs.
    private let earlier: [Int: MultipartUploads.Part]
    private let sent = Mutex<[Int: MultipartUploads.Part]>([:])

    private init(
      _ uploads: MultipartUploads, _ note: UploadNote, id: String, _ plan: PartPlan,
      _ earlier: [Int: MultipartUploads.Part]
    ) {
      (self.uploads, self.note, self.id, self.plan, self.earlier) = (uploads, note, id, plan, earlier)
    }

    /// Continues the upload of the note, or begins one.
    ///
    /// - Parameters:
    ///   - note: The note of an earlier run, or a new one.
    ///   - byteCount: The size of the object; `nil` if it is not known yet.
    ///   - fields: The fields of the object.
    ///   - keep: Keeps a note in the ledger. It is called before the first part is sent.
    static func begin(
      _ uploads: MultipartUploads, _ note: UploadNote, byteCount: Int64?, _ fields: HeaderFields,
      keep: (UploadNote) async throws -> Void
    ) async throws -> PartUpload {
      if let id = note.upload {
        // The plan of a run that did not know the size may be too short, in theory.
        if let plan = note.plan, byteCount.map({ plan.parts(of: $0) != nil }) ?? plan.isGrowing {
          if let parts = try await uploads.parts(note.key, id) { return PartUpload(uploads, note, id: id, plan, parts) }
        } else {
          try? await uploads.abort(note.key, id)
        }
      }
      let plan = PartPlan(partSize: uploads.client.configuration.partSize, byteCount: byteCount)
      var note = note
      var fields = fields
      fields[UploadNote.tokenField] = note.token
      // An upload that the ledger does not know is found by no later run: a cancelled task does not interrupt these calls, which
      // have limits of their own.
      let (key, all) = (note.key, fields)
      let id = try await Task { try await uploads.create(key, all) }.value
      (note.upload, note.plan) = (id, plan)
      do {
        try Task.checkCancellation()
        try await keep(note)
      } catch {
        await Task { try? await uploads.abort(key, id) }.value
        throw error
      }
      return PartUpload(uploads, note, id: id, plan, [:])
    }

    /// Sends a part, unless the storage has it.
    /// - Throws: `DownloadError` with `.network` if another program has ended the upload.
    func send(_ number: Int, _ body: any RequestBody) async throws {
      if let part = earlier[number], try await Self.isSame(part, body) {
        sent.withLock { $0[number] = part }
        return
      }
      let digest = try await Self.digest(.sha256, of: body)
      guard let part = try await uploads.send(number, body, digest, of: id, note.key) else {
        throw Self.ended(note)
      }
      sent.withLock { $0[number] = part }
    }

    static func ended(_ note: UploadNote) -> DownloadError {
      DownloadError(
        .network,
        "the upload to s3://\(note.bucket)/\(note.key.escaped) was ended by another program or by a rule of the bucket; a retry "
          + "begins again")
    }

    private static func isSame(_ part: MultipartUploads.Part, _ body: any RequestBody) async throws -> Bool {
      guard part.size == body.byteCount else { return false }
      if let known = part.digest { return Data(try await digest(.sha256, of: body)).base64EncodedString() == known }
      // Without MD5, which a FIPS provider refuses, the part is sent again.
      guard let sum = part.etag.md5, HashFunction.md5.isAvailable else { return false }
      return try await digest(.md5, of: body) == sum
    }

    /// The digest of a body. Reading and hashing block.
    private static func digest(_ function: HashFunction, of body: any RequestBody) async throws -> [UInt8] {
      try await BlockingThreads.run { try body.digest(function, checkCancellation: $0.check) }
    }

    /// The parts in their order. No others are of the object.
    var parts: [MultipartUploads.Part] { sent.withLock { $0.values.sorted { $0.number < $1.number } } }

    /// The tag that the object gets, if those of its parts are MD5 sums.
    var expectedTag: String? {
      let sums = parts.compactMap(\.etag.md5)
      guard sums.count == parts.count, let sum = try? HashFunction.md5.digest(of: sums.flatMap(\.self)) else {
        return nil
      }
      return "\(sum.hex)-\(sums.count)"
    }
  }

  extension String {
    /// A tag without its quotation marks.
    var bareTag: String { trimmingCharacters(in: ["\""]) }

    /// The MD5 sum that the tag of a part, or of an object that was uploaded in one request, usually is.
    var md5: [UInt8]? {
      let digits = Array(bareTag.utf8)
      guard digits.count == 32 else { return nil }
      var bytes: [UInt8] = []
      for place in stride(from: 0, to: 32, by: 2) {
        guard let byte = UInt8(String(decoding: digits[place..<place + 2], as: UTF8.self), radix: 16) else {
          return nil
        }
        bytes.append(byte)
      }
      return bytes
    }
  }
#endif
