#if Curl
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import Testing

  @testable import DownpipeS3

  /// The examples of AWS's documentation (Amazon S3 API Reference, “Signature calculations for the Authorization header:
  /// transferring payload in a single chunk”), sent through a proxy that records them.
  @Suite("Signatures as in AWS's documentation")
  struct SignatureTests {
    private static let date = Date(timeIntervalSince1970: 1_369_353_600)

    private struct Example: CustomTestStringConvertible {
      var testDescription: String
      var call: S3Call
      var signedFields: String
      var signature: String
    }

    private static var examples: [Example] {
      var get = S3Call(method: .get, bucket: "examplebucket", key: "test.txt", purpose: "a test")
      get.fields["Range"] = "bytes=0-9"
      var put = S3Call(method: .put, bucket: "examplebucket", key: "test$file.text", purpose: "a test")
      put.fields["Date"] = "Fri, 24 May 2013 00:00:00 GMT"
      put.fields["x-amz-storage-class"] = "REDUCED_REDUNDANCY"
      put.send(Array("Welcome to Amazon S3.".utf8))
      let lifecycle = S3Call(method: .get, bucket: "examplebucket", query: ["lifecycle": ""], purpose: "a test")
      let list = S3Call(
        method: .get, bucket: "examplebucket", query: ["prefix": "J", "max-keys": "2"], purpose: "a test")
      return [
        Example(
          testDescription: "an object", call: get, signedFields: "host;range;x-amz-content-sha256;x-amz-date",
          signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Example(
          testDescription: "an upload", call: put,
          signedFields: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
          signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Example(
          testDescription: "the lifecycle of a bucket", call: lifecycle,
          signedFields: "host;x-amz-content-sha256;x-amz-date",
          signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
          testDescription: "a list of objects", call: list, signedFields: "host;x-amz-content-sha256;x-amz-date",
          signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
      ]
    }

    @Test(arguments: examples)
    private func `the request has the signature of the documentation`(example: Example) async throws {
      let proxy = try await ScriptedHTTPServer.start { _ in ScriptedReply(200) }
      var configuration = S3.Configuration()
      configuration.environment = [:]
      configuration.signingDate = Self.date
      configuration.region = "us-east-1"
      configuration.endpoint = URL(string: "http://s3.amazonaws.com")
      configuration.addressing = .hostName
      configuration.credentials = .keys(
        id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
      configuration.connections.proxy = .proxy(.init(.http, host: proxy.host, port: proxy.port))
      _ = try await S3Client(configuration).send(example.call)
      let request = try #require(proxy.activity.requests.first)
      #expect(
        request.headers["Authorization"]
          == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
          + "SignedHeaders=\(example.signedFields), Signature=\(example.signature)")
      #expect(request.headers["Host"] == "examplebucket.s3.amazonaws.com")
      await proxy.shutdown()
    }
  }
#endif
