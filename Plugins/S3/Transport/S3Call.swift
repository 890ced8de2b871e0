#if LIBCURL
  import DownpipeCore
  import DownpipeDigest
  import DownpipeHTTP
  import Foundation

  /// A request to the storage, before it is signed.
  struct S3Call: Sendable {
    var method: HTTPOrder.Method
    var bucket: String
    /// The key of an object, not encoded; empty for the bucket.
    var key = ""
    /// The items of the query, not encoded.
    var query: [String: String] = [:]
    var fields = HeaderFields()
    var body: (any RequestBody)?
    /// The SHA-256 of the body, which is signed: the storage refuses a body that was changed on its way.
    var digest = S3Call.emptyDigest
    /// Whether the request is signed.
    var isSigned = true
    /// The lease of the download that it is for.
    var lease = RequestLease.unlimited
    /// What it is for, such as “the upload to s3://bucket/key”.
    var purpose: String

    static let emptyDigest = sha256([]).hex

    /// The query as it is sent, which is the form that is signed: sorted, each item with an equals sign.
    var queryText: String {
      query.map { (ObjectLocation.encoded($0), ObjectLocation.encoded($1)) }.sorted { $0 < $1 }
        .map { "\($0)=\($1)" }.joined(separator: "&")
    }

    mutating func send(_ bytes: [UInt8]) {
      body = MemoryBody(bytes: bytes)
      digest = sha256(bytes).hex
    }
  }

  /// A body in memory.
  struct MemoryBody: RequestBody {
    let bytes: [UInt8]

    var byteCount: Int64 { Int64(bytes.count) }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
      let count = min(buffer.count, bytes.count - Int(offset))
      guard count > 0 else { return 0 }
      bytes.withUnsafeBytes {
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)...].prefix(count)))
      }
      return count
    }
  }

  extension Sequence<UInt8> {
    /// In hexadecimal digits.
    var hex: String {
      reduce(into: "") { $0 += ($1 < 16 ? "0" : "") + String($1, radix: 16) }
    }
  }

  /// The answer to a request, with its whole body.
  struct S3Answer: Sendable {
    var status: Int
    var fields: HeaderFields
    var body: [UInt8]

    /// The failure in an answer that began as a success: the storage does not know yet how the completion of an upload ends
    /// when it sends the status.
    var lateFailure: S3Failure? {
      guard let document = try? S3Document(body), document.name == "Error" else { return nil }
      var failure = S3Failure(status: status, fields: [:], body: body)
      // Servers of this protocol have codes of their own for what passes, such as XMinioWriteQuorum; the usual status of such
      // an error would say so.
      if !failure.isFinal { failure.status = 500 }
      return failure
    }
  }
#endif
