#if Curl
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation

  @testable import DownpipeS3

  extension ScriptedReply {
    /// The document with which a storage refuses a request.
    static func refusal(_ status: Int, _ code: String, _ headers: HeaderFields = []) -> ScriptedReply {
      ScriptedReply(status, headers, body: .text("<Error><Code>\(code)</Code><Message>It is so.</Message></Error>"))
    }
  }

  extension ScriptedRequest {
    /// The id of the key that has signed the request; `nil` if none has.
    var keyID: String? {
      guard let text = headers["Authorization"], let start = text.range(of: "Credential=") else { return nil }
      return String(text[start.upperBound...].prefix { $0 != "/" })
    }

    /// The number of the part that is uploaded.
    var part: Int? {
      URLComponents(string: target)?.queryItems?.first { $0.name == "partNumber" }?.value.flatMap { Int($0) }
    }
  }

  extension S3.Configuration {
    /// The settings for a scripted storage; nothing of the machine's own environment is used.
    static func scripted(
      _ server: ScriptedHTTPServer, _ change: (inout S3.Configuration) -> Void = { _ in }
    ) -> S3.Configuration {
      var configuration = S3.Configuration()
      configuration.environment = ["HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"]
      configuration.endpoint = server.url()
      configuration.region = "us-east-1"
      configuration.credentials = .keys(id: "a", secret: "b")
      configuration.partSize = 5 << 20
      configuration.connections.proxy = .none
      change(&configuration)
      return configuration
    }
  }

  extension S3Call {
    static let ofTest = S3Call(method: .get, bucket: "bucket", key: "key", purpose: "a test")
  }
#endif
