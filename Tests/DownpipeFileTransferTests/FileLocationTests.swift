#if LIBCURL
  import DownpipeCore
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeFileTransfer

  /// Which URLs are fetched, and what libcurl gets of them.
  @Suite("Places of files", .endsHangs)
  struct FileLocationTests {
    @Test(
      "The URL for libcurl",
      arguments: [
        ("ftp://h/a", "ftp://h:21/a", "a"), ("FTP://H/a/b", "ftp://h:21/a/b", "b"),
        ("ftps://h/a", "ftps://h:990/a", "a"), ("sftp://h/a", "sftp://h:22/a", "a"),
        ("ftp://h:2121/a", "ftp://h:2121/a", "a"),
        ("ftp://me:pw@h/a", "ftp://h:21/a", "a"), ("ftp://h/%2Fetc/x", "ftp://h:21/%2Fetc/x", "x"),
        ("ftp://h/a%20b%C3%A9", "ftp://h:21/a%20b%C3%A9", "a bé"), ("ftp://h/a b", "ftp://h:21/a%20b", "a b"),
        ("ftp://h/a;type=i", "ftp://h:21/a", "a"), ("ftp://h/a;TYPE=I", "ftp://h:21/a", "a"),
        ("ftp://h/a;type=ix", "ftp://h:21/a%3Btype=ix", "a;type=ix"), ("ftp://h/a;b/c", "ftp://h:21/a%3Bb/c", "c"),
        ("ftp://h/a%3Btype=a", "ftp://h:21/a%3Btype=a", "a;type=a"),
        ("ftp://h/a?b=c", "ftp://h:21/a%3Fb=c", "a?b=c"), ("ftp://h/a#b", "ftp://h:21/a", "a"),
        ("ftp://[::1]/a", "ftp://[::1]:21/a", "a"), ("sftp://h/~/a", "sftp://h:22/~/a", "a"),
        ("sftp://h/a;type=a", "sftp://h:22/a%3Btype=a", "a;type=a"), ("sftp://h/a%0Ab", "sftp://h:22/a%0Ab", "a\nb"),
        ("ftp://h/%FF", "ftp://h:21/%FF", nil),
      ] as [(String, String, String?)])
    func wireText(_ text: String, _ wire: String, _ name: String?) throws {
      let location = try FileLocation(try url(text))
      #expect(location.wireText == wire)
      #expect(location.name == name)
    }

    @Test(
      "URLs that are refused",
      arguments: [
        ("ftp://h/", DownloadError.Code.unsupportedURL), ("ftp://h", .unsupportedURL), ("ftp://h/a/", .unsupportedURL),
        ("ftp://h/a%2F", .unsupportedURL), ("sftp://h/a/", .unsupportedURL), ("ftp://h/a;type=a", .unsupportedURL),
        ("ftp://h/a;type=d", .unsupportedURL), ("ftp://h/a;Type=A", .unsupportedURL),
        ("ftp://h/a%0D%0ADELE%20b", .invalidRequest),
        ("ftp://h/a%0Ab/c", .invalidRequest), ("ftp://h/a%00", .invalidRequest), ("sftp://h/a%00b", .invalidRequest),
        ("ftp://h/a%7F", .invalidRequest), ("ftp://u%0D%0AX@h/a", .invalidRequest),
        ("ftp://u:p%0A@h/a", .invalidRequest),
        ("sftp://u:p%00@h/a", .invalidRequest), ("http://h/a", .unsupportedURL), ("ftp://h:0/a", .invalidRequest),
      ])
    func refused(_ text: String, _ code: DownloadError.Code) throws {
      let error = #expect(throws: DownloadError.self) { try FileLocation(try url(text)) }
      #expect(error?.code == code)
    }

    @Test(
      "The log-in of a URL and of a field",
      arguments: [
        ("me", "me", nil), ("me:pw", "me", "pw"), ("me:", "me", ""), ("me:p:w", "me", "p:w"),
        ("m%40e:p%2Fw", "m@e", "p/w"),
        ("%E9", "é", nil),
      ] as [(String, String, String?)])
    func userInfo(_ text: String, _ user: String, _ password: String?) throws {
      let logIn = try FileLocation(try url("ftp://\(text)@h/a")).logIn
      #expect(logIn?.user == user && logIn?.password == password)
    }

    @Test func basicFieldsAreLogIns() throws {
      func logIn(_ field: String?) throws -> FileLogIn? { try FileLogIn(authorization: field) }
      #expect(try logIn("Basic \(Data("me:p:w".utf8).base64EncodedString())")?.password == "p:w")
      #expect(try logIn("basic  \(Data("me:".utf8).base64EncodedString())")?.user == "me")
      for field in [nil, "", "Bearer abc", "Basic ###", "Basic \(Data("me".utf8).base64EncodedString())", "Basic Og=="]
      {
        #expect(try logIn(field) == nil, "\(field ?? "")")
      }
      #expect(throws: DownloadError.self) { try logIn("Basic \(Data("me:a\r\nDELE b".utf8).base64EncodedString())") }
    }

    @Test func schemesOfTheSource() throws {
      let source = FileTransferSource()
      let accepted = try [
        "ftp://h/a", "FTPS://h/a", "sftp://h/a", "http://h/a", "file:///a", "ftpx://h/a", "scp://h/a",
      ]
      .filter { source.accepts(try url($0)) }
      #expect(accepted == ["ftp://h/a", "FTPS://h/a", "sftp://h/a"])
    }

    @Test func settingsAreShownWithoutSecrets() throws {
      var configuration = FileTransferSource.Configuration()
      #expect(FileTransferSource(configuration).summary == "")
      let origin = try #require(Origin("ftp://h"))
      configuration.credentials = [.init(user: "me", password: "hunter2", for: origin)]
      configuration.ssh.privateKey = .init(path: "/key", passphrase: "hunter2")
      configuration.encryption = .required
      var text = FileTransferSource(configuration).summary
      dump(configuration, to: &text)
      text += "\(configuration)"
      #expect(text.contains("TLS required") && text.contains("/key") && !text.contains("hunter2"))
    }
  }
#endif
