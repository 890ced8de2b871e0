#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import Foundation

  /// The calls of multipart uploads.
  struct MultipartUploads: Sendable {
    let client: S3Client
    let bucket: String

    /// A part that the storage has.
    struct Part: Sendable, Hashable {
      var number: Int
      var size: Int64
      /// With its quotation marks.
      var etag: String
      /// The SHA-256 of the part, in Base64, if the storage keeps it.
      var digest: String?
    }

    private func purpose(_ key: String) -> String { "the upload to s3://\(bucket)/\(key.escaped)" }

    private func call(_ method: HTTPOrder.Method, _ key: String, _ query: [String: String] = [:]) -> S3Call {
      S3Call(method: method, bucket: bucket, key: key, query: query, purpose: purpose(key))
    }

    /// A failure that stays one.
    private func named<Result>(_ purpose: String, _ work: () async throws -> Result) async throws -> Result {
      do { return try await work() } catch let failure as S3Failure { throw failure.error(purpose, bucket: bucket) }
    }

    // MARK: Objects

    /// What is known of an object.
    struct Object: Sendable, Hashable {
      var size: Int64?
      var etag: String?
      /// The token of the upload, for an object of several parts that this step has written.
      var token: String?
      /// The SHA-256, for an object that this step has written in one request.
      var digest: String?

      init(_ fields: HeaderFields) {
        let range = fields["Content-Range"]?.split(separator: "/").last
        size = range.flatMap { Int64($0) } ?? fields["Content-Length"].flatMap { Int64($0) }
        etag = fields["ETag"]
        token = fields[UploadNote.tokenField]
        digest = fields[UploadNote.digestField]
      }
    }

    /// Asks for an object; `nil` if there is none.
    /// - Throws: `DownloadError` with `.objectStorageDenied` if the credentials have no right to know.
    func object(_ key: String) async throws -> Object? {
      try await named(purpose(key)) {
        do {
          let answer = try await client.send(call(.head, key)) { $0.status == 404 }
          return answer.status < 300 ? Object(answer.fields) : nil
        } catch let failure as S3Failure where failure.code.isEmpty && [400, 403].contains(failure.status) {
          // The answer to HEAD does not say why.
          var call = call(.get, key)
          call.fields["Range"] = "bytes=0-0"
          let (head, response, reason) = try await client.open(call)
          guard let reason else {
            response.discard()
            return Object(head.fields)
          }
          if reason.status == 404 { return nil }
          if reason.status == 416 { return Object(head.fields) }
          throw reason
        }
      }
    }

    /// Whether the upload of a note has become an object. Without the right to know, it counts as not.
    func hasObject(of note: UploadNote, size: Int64?) async throws -> Bool {
      do {
        guard let object = try await object(note.key), object.token == note.token else { return false }
        return size == nil || object.size == size
      } catch let error as DownloadError where error.code == .objectStorageDenied {
        return false
      }
    }

    /// What an upload has come to.
    enum Outcome: Sendable, Hashable {
      /// The object is there, with this tag.
      case stored(etag: String?)
      /// There is an object of the same key already.
      case exists
      /// The storage does not know the upload.
      case unknownUpload
      /// The storage has no condition for this kind of upload, and nothing was stored.
      case unconditional
    }

    /// Uploads an object in one request.
    func put(_ key: String, _ body: any RequestBody, digest: String, _ fields: HeaderFields, onlyIfNew: Bool)
      async throws
      -> Outcome
    {
      var call = call(.put, key)
      call.fields = fields
      (call.body, call.digest) = (body, digest)
      if onlyIfNew { call.fields["If-None-Match"] = "*" }
      do {
        return .stored(etag: try await client.send(call).fields["ETag"])
      } catch let failure as S3Failure {
        if failure.isConflict { return .exists }
        if onlyIfNew, failure.isUnsupported { return .unconditional }
        throw failure.error(purpose(key), bucket: bucket)
      }
    }

    // MARK: Uploads in parts

    /// Begins an upload, and returns its id.
    func create(_ key: String, _ fields: HeaderFields) async throws -> String {
      var call = call(.post, key, ["uploads": ""])
      call.fields = fields
      call.fields["x-amz-checksum-algorithm"] = "SHA256"
      call.send([])
      let answer = try await named(purpose(key)) { try await client.send(call) }
      guard let id = try S3Document(answer.body)["UploadId"], !id.isEmpty, id.utf8.count <= 4096 else {
        throw DownloadError(.invalidResponse, "\(purpose(key)) failed: the object storage has sent no id for it")
      }
      return id
    }

    /// The parts that the storage has; `nil` if it does not know the upload.
    func parts(_ key: String, _ upload: String) async throws -> [Int: Part]? {
      var parts: [Int: Part] = [:]
      var marker = 0
      while true {
        var query = ["uploadId": upload, "max-parts": "1000"]
        if marker > 0 { query["part-number-marker"] = "\(marker)" }
        let answer = try await named(purpose(key)) {
          try await client.send(call(.get, key, query)) { $0.isMissing || $0.status == 403 }
        }
        guard answer.status != 404 else { return nil }
        // Without the right to list them, all parts are sent again, to the same upload.
        guard answer.status != 403 else { return [:] }
        let page = try S3Document(answer.body)
        for entry in page.all("Part") {
          guard let number = entry["PartNumber"].flatMap({ Int($0) }), let size = entry["Size"].flatMap({ Int64($0) }),
            let etag = entry["ETag"], (1...PartPlan.mostParts).contains(number)
          else { continue }
          parts[number] = Part(number: number, size: size, etag: etag, digest: entry["ChecksumSHA256"])
        }
        guard page["IsTruncated"] == "true", let next = page["NextPartNumberMarker"].flatMap({ Int($0) }),
          next > marker, next <= PartPlan.mostParts
        else { return parts }
        marker = next
      }
    }

    /// Uploads a part; `nil` if the storage does not know the upload.
    func send(_ number: Int, _ body: any RequestBody, _ digest: [UInt8], of upload: String, _ key: String)
      async throws
      -> Part?
    {
      var call = call(.put, key, ["partNumber": "\(number)", "uploadId": upload])
      (call.body, call.digest) = (body, digest.hex)
      let sum = Data(digest).base64EncodedString()
      call.fields["x-amz-checksum-sha256"] = sum
      let answer = try await named(purpose(key)) {
        try await client.send(call) { $0.status == 404 && $0.code == "NoSuchUpload" }
      }
      guard answer.status != 404 else { return nil }
      guard let etag = answer.fields["ETag"] else {
        throw DownloadError(.invalidResponse, "\(purpose(key)) failed: the object storage has sent no tag for a part")
      }
      return Part(
        number: number, size: body.byteCount, etag: etag,
        digest: answer.fields["x-amz-checksum-sha256"] == sum ? sum : nil)
    }

    /// Makes an object of the parts.
    func complete(_ key: String, _ upload: String, _ parts: [Part], onlyIfNew: Bool) async throws -> Outcome {
      var call = call(.post, key, ["uploadId": upload])
      if onlyIfNew { call.fields["If-None-Match"] = "*" }
      call.fields["Content-Type"] = "application/xml"
      let list = parts.map { part in
        let digest = part.digest.map { "<ChecksumSHA256>\($0)</ChecksumSHA256>" } ?? ""
        return "<Part><PartNumber>\(part.number)</PartNumber><ETag>\(part.etag.inXML)</ETag>\(digest)</Part>"
      }
      let document =
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(list.joined())"
        + "</CompleteMultipartUpload>"
      call.send(Array(document.utf8))
      do {
        return .stored(etag: try S3Document(try await client.send(call).body)["ETag"])
      } catch let failure as S3Failure {
        if failure.isConflict { return .exists }
        if failure.code == "NoSuchUpload" || failure.status == 404 && failure.code != "NoSuchBucket" {
          return .unknownUpload
        }
        if onlyIfNew, failure.isUnsupported { return .unconditional }
        throw failure.error(purpose(key), bucket: bucket)
      }
    }

    /// Ends an upload and removes its parts. Nothing to do if the storage does not know it.
    func abort(_ key: String, _ upload: String) async throws {
      _ = try await named(purpose(key)) {
        try await client.send(call(.delete, key, ["uploadId": upload])) { $0.status == 404 }
      }
    }

    /// Ends the uploads below a prefix that were started before a date.
    func abort(prefix: String, startedBefore date: Date) async throws -> Int {
      let purpose = "the list of uploads in s3://\(bucket)"
      var (markers, count) = ([String: String](), 0)
      while true {
        let query = ["uploads": "", "prefix": prefix].merging(markers) { $1 }
        let answer = try await named(purpose) {
          try await client.send(S3Call(method: .get, bucket: bucket, query: query, purpose: purpose))
        }
        let page = try S3Document(answer.body)
        for entry in page.all("Upload") {
          guard let key = entry["Key"], let upload = entry["UploadId"],
            let started = entry["Initiated"].flatMap(Date.init(timestamp:)), started < date
          else { continue }
          try await abort(key, upload)
          count += 1
        }
        guard page["IsTruncated"] == "true", let key = page["NextKeyMarker"] else { return count }
        var next = ["key-marker": key]
        if let upload = page["NextUploadIdMarker"], !upload.isEmpty { next["upload-id-marker"] = upload }
        guard next != markers else { return count }
        markers = next
      }
    }
  }

  extension Date {
    /// A time in a document, with or without fractions of a second.
    init?(timestamp: String) {
      let date =
        (try? Date(timestamp, strategy: .iso8601))
        ?? (try? Date(timestamp, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
      guard let date else { return nil }
      self = date
    }
  }

  extension String {
    /// As text of an element.
    fileprivate var inXML: String {
      replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
        .replacingOccurrences(of: ">", with: "&gt;").replacingOccurrences(of: "\"", with: "&quot;")
    }
  }
#endif
