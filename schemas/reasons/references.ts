/** Reasons about referenced objects: other resources, Secrets, identity, backends. */
import type { ReasonRow } from './own.ts'

export const referenceReasons: readonly ReasonRow[] = [
  {
    reasons: ['AmbiguousSubjectProvider'],
    means: 'there are several upstream providers, and `subjectProviderName` does not select one',
    step: 'set `subjectProviderName`',
  },
  {
    reasons: ['AuthConfigNotFound', 'ExternalAuthConfigNotFound'],
    means: 'the MCPExternalAuthConfig does not exist',
    step: 'create the MCPExternalAuthConfig in the same namespace, or fix the name',
  },
  {
    reasons: ['AuthInvalid'],
    means: 'a Secret, or a key in it, is missing',
    step: 'create or fix the Secret: the message contains its name and the key',
  },
  {
    reasons: ['AuthServerConfigInvalid'],
    means: 'the embedded authorization server cannot start with this configuration',
    step: 'fix the configuration: the message lists every error. A frequent cause is an http issuer without `insecureAllowHTTP`',
  },
  {
    reasons: ['AuthServerRefNotFound'],
    means: '`authServerRef` refers to a configuration that does not exist',
    step: 'create the MCPExternalAuthConfig in the same namespace, or fix the name',
  },
  {
    reasons: ['AuthServerRefInvalidType', 'AuthServerRefInvalidConfig'],
    means:
      '`authServerRef` refers to a configuration that is not an embedded authorization server, or that this kind does not support',
    step: 'fix the reference or the configuration: the message contains the missing parts',
  },
  {
    reasons: ['AuthzConfigInvalid', 'AuthzPolicySyntaxInvalid'],
    means: 'a Cedar policy or entity cannot be parsed',
    step: 'fix the policy: the message contains its index',
  },
  {
    reasons: ['AuthzConfigMapNotFound', 'AuthzConfigMapInvalid'],
    means: 'the ConfigMap for the policies is missing, or does not contain Cedar policies',
    step: 'create or fix the ConfigMap; the default key is `authz.json`',
  },
  {
    reasons: ['AuthzConfigRefNotFound', 'AuthzConfigRefNotValid'],
    means: 'the MCPAuthzConfig is missing, invalid, or (for a VirtualMCPServer) not `cedarv1`',
    step: 'create or fix the MCPAuthzConfig: its `Valid` condition gives the reason; for a VirtualMCPServer, configure a decision point in `authzConfig`, type `httpv1` or `authzenv1`',
  },
  {
    reasons: ['AuthzPrimaryProviderRequiresAuthServer', 'AuthzUpstreamUnknown'],
    means:
      '`primaryUpstreamProvider` is set without an embedded authorization server, or does not name one of its upstreams',
    step: 'use one of `authServerConfig.upstreamProviders`',
  },
  {
    reasons: ['AuthzPrimaryUpstreamProviderDeprecated', 'PrimaryUpstreamProviderIgnored'],
    means: 'the inline `primaryUpstreamProvider` is used, or has no effect on this kind',
    isWarning: true,
    step: 'use `authServerConfig.primaryUpstreamProvider`',
  },
  {
    reasons: ['AuthzUpstreamAutoSelected'],
    means:
      'there are several upstreams and no `primaryUpstreamProvider`, so policies read the claims from the first upstream',
    isWarning: true,
    step: 'set `primaryUpstreamProvider`',
  },
  {
    reasons: ['BackendsExcluded'],
    means:
      'condition `BackendsValidated`: a virtual server excludes backends that have a broken reference or setting, or whose Secret or file is missing in the pod. The running server treats them as unavailable',
    step: 'fix each backend that the message and `status.discoveredBackends` name',
  },
  {
    reasons: ['BackendsPending'],
    means: 'the pods are running, but have not checked any backend yet',
    step: 'wait until `status.discoveredBackends` lists the backends',
  },
  {
    reasons: ['CABundleRefNotFound', 'CABundleRefInvalid'],
    means: 'the ConfigMap with the certificate authority, or its key, is missing',
    step: 'create or fix the ConfigMap; the default key is `ca.crt`',
  },
  {
    reasons: ['ClientCertificateNotFound'],
    means: 'the Secret with the client certificate, or one of its keys, is missing',
    step: 'create a Secret of type kubernetes.io/tls; the message gives its name',
  },
  {
    reasons: ['ClientCertificateInvalid'],
    means: "a client's certificate and private key are not a valid pair",
    step: 'fix the Secret: the message contains the key and the reason',
  },
  {
    reasons: ['CompositeToolRefNotFound', 'CompositeToolRefInvalid'],
    means: 'a workflow definition is missing or invalid',
    step: 'create the definition, or fix the errors in its `status.validationErrors`',
  },
  {
    reasons: ['ConversionFailed'],
    means: 'a strategy cannot be converted to the runtime configuration, so its backend is excluded',
    step: 'fix the strategy named in the message',
  },
  {
    reasons: ['EmbeddingServerNotFound', 'EmbeddingServerNotReady'],
    means: "the optimizer's embedding service does not exist, or is still loading",
    step: 'wait until the service is ready; if it does not become ready, check the EmbeddingServer',
  },
  {
    reasons: ['GroupRefNotFound', 'GroupRefNotReady'],
    means: 'the MCPGroup is missing or has an error',
    step: 'create the MCPGroup in the same namespace',
  },
  {
    reasons: ['HeaderSecretNotFound'],
    means: "a forwarded header's Secret or key is missing",
    step: 'create or fix the Secrets: the message lists all of them',
  },
  {
    reasons: ['InvalidExternalAuthConfig'],
    means: 'the MCPExternalAuthConfig is invalid',
    step: 'fix that object: its `Valid` condition gives the reason',
  },
  {
    reasons: ['NoRoutableBackends', 'SomeBackendsUnhealthy'],
    means: 'health checks of some or all backends fail',
    step: 'check the backends: `status.discoveredBackends` lists them with the reasons',
  },
  {
    reasons: ['OIDCConfigRefNotFound', 'OIDCConfigRefNotValid'],
    means: 'the MCPOIDCConfig is missing or invalid',
    step: 'fix that object: its `Valid` condition gives the reason',
  },
  {
    reasons: ['ReferencesNotReady'],
    means: 'an MCPServerEntry or MCPOpenAPIServer is waiting for a referenced object',
    step: 'fix the objects that the other conditions name',
  },
  {
    reasons: ['SecretNotFound'],
    means: 'a Secret or key is missing',
    step: 'create or fix the Secret: the message contains its name and the key',
  },
  {
    reasons: ['AccessRefused'],
    means: 'condition `Attached`: the API server denies the proxy a permission that it needs to attach',
    step: "check the proxy's Role and RoleBinding, and check that Metacontroller has these permissions",
  },
  {
    reasons: ['SubjectProviderUnknown'],
    means: '`subjectProviderName` does not name an upstream provider',
    step: 'fix `subjectProviderName`',
  },
  {
    reasons: ['WebhookConfigRefNotFound', 'WebhookConfigRefInvalid'],
    means: 'the MCPWebhookConfig is missing or invalid',
    step: 'fix that object: its `Valid` condition gives the reason',
  },
  {
    reasons: ['TelemetryConfigRefNotFound', 'TelemetryConfigRefInvalid'],
    means: 'the MCPTelemetryConfig is missing or invalid',
    step: 'fix that object: its `Valid` condition gives the reason',
  },
  {
    reasons: ['TLSSecretNotFound'],
    means:
      'the Secret named in `spec.tls.secretName` (condition `TLSReady`) or in `spec.exposure.ingress.tlsSecretName` (`ExposureReady`), or one of its keys, is missing',
    step: 'create the Secret, or let cert-manager create it',
  },
  {
    reasons: ['TLSSecretInvalid'],
    means: 'the certificate in the Secret named in `spec.tls.secretName` cannot be used',
    step: 'fix the Secret: the message contains the key and the reason; see [tls.md](tls.md)',
  },
  {
    reasons: ['TLSClientCANotFound', 'TLSClientCAInvalid'],
    means:
      'the ConfigMap named in `spec.tls.clientCABundleRef` or its key is missing, or contains no CA certificate',
    step: 'fix the ConfigMap; see [tls.md](tls.md)',
  },
  {
    reasons: ['ToolConfigNotFound', 'ToolConfigNotValid'],
    means:
      'the MCPToolConfig is missing or invalid. A virtual server excludes its backend or, if an override renames a tool to a reserved name, only that tool',
    step: 'fix the MCPToolConfig: the message contains the error and the excluded tool',
  },
  {
    reasons: ['UnknownBackend'],
    means:
      'a VirtualMCPServer has settings for a backend that is not a member of its group: the intended backend is still used, but without these credentials, timeouts or filters',
    step: 'fix the name: the message lists each field and suggests a name',
  },
]
