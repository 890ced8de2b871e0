#if LIBCURL || AsyncHTTPClient
  /// A certificate that signed itself, for the name localhost alone, from 2000 to 2099. Its key is worth nothing.
  enum TestCertificate {
    static let certificate = """
      -----BEGIN CERTIFICATE-----
      MIIBYDCCAQegAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
      c3QwIBcNMDAwMTAxMDAwMDAwWhgPMjA5OTEyMzEyMzU5NTlaMBQxEjAQBgNVBAMM
      CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMMeJ1WDeB3jHv2O
      1jkZjJbcP7p0kaOOpMJcQl5V8sA8/syCqTmT4udzfwPaNRqa9Lb4UTRJLoPBoJRK
      vYtawTijSDBGMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAPBgNVHRMBAf8EBTADAQH/
      MB0GA1UdDgQWBBTR/iRwyscprMuDh3PjOzpIt6wR2zAKBggqhkjOPQQDAgNHADBE
      AiAnv8AZ5sUUPRw5Ekh3cCEbVh13bxv0lfeAwpxuRJzFCAIgIfTsQ/ZhMEh066f9
      mCdaPiESqAxSeLqDYReO59D9mOE=
      -----END CERTIFICATE-----
      """

    static let privateKey = """
      -----BEGIN PRIVATE KEY-----
      MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgrDgywDTsRX7Wn/bA
      geeYkZylhizPu7BN1jIZmaEC/DChRANCAATDHidVg3gd4x79jtY5GYyW3D+6dJGj
      jqTCXEJeVfLAPP7Mgqk5k+Lnc38D2jUamvS2+FE0SS6DwaCUSr2LWsE4
      -----END PRIVATE KEY-----
      """
  }
#endif
