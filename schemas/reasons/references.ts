/** Reasons that are about what an object refers to: other objects, Secrets, identity, backends. */
import type { ReasonRow } from './row.ts'

export const referenceReasons: readonly ReasonRow[] = [
  {
    reasons: ['AmbiguousSubjectProvider'],
    means: '`subjectProviderName` is not given, and there are several upstreams to choose from',
    step: 'name one in `subjectProviderName`',
  },
  {
    reasons: ['AuthConfigNotFound', 'ExternalAuthConfigNotFound'],
    means: 'the MCPExternalAuthConfig is not there',
    step: 'create it in the same namespace, or mend the name',
  },
  {
    reasons: ['AuthInvalid'],
    means: 'a Secret, or a key in it, is missing',
    step: 'create or mend the Secret: the message names it and the key',
  },
  {
    reasons: ['AuthServerConfigInvalid'],
    means: 'the embedded authorization server cannot start so',
    step: 'mend the configuration: the message lists every error; often it is an http issuer without `insecureAllowHTTP`',
  },
  {
    reasons: ['AuthServerRefNotFound'],
    means: '`authServerRef` names nothing',
    step: 'create the MCPExternalAuthConfig in the same namespace, or mend the name',
  },
  {
    reasons: ['AuthServerRefInvalidType', 'AuthServerRefInvalidConfig'],
    means: '`authServerRef` names a configuration that is no embedded server, or one that cannot run here',
    step: 'mend the reference or the configuration: the message says what is missing',
  },
  {
    reasons: ['AuthzConfigInvalid', 'AuthzPolicySyntaxInvalid'],
    means: 'a Cedar policy or entity does not parse',
    step: 'mend the policy: the message names its index',
  },
  {
    reasons: ['AuthzConfigMapNotFound', 'AuthzConfigMapInvalid'],
    means: 'the ConfigMap with policies is missing or not Cedar',
    step: 'create or mend the ConfigMap; its key is `authz.json` unless you named another',
  },
  {
    reasons: ['AuthzConfigRefNotFound', 'AuthzConfigRefNotValid'],
    means: 'the MCPAuthzConfig is missing, invalid, or (for a VirtualMCPServer) not `cedarv1`',
    step: 'create or mend it: its own condition `Valid` says why; a decision point of a VirtualMCPServer stands in `authzConfig`, type `httpv1` or `authzenv1`',
  },
  {
    reasons: ['AuthzPrimaryProviderRequiresAuthServer', 'AuthzUpstreamUnknown'],
    means: '`primaryUpstreamProvider` without an embedded server, or not the name of one of its upstreams',
    step: 'name one of `authServerConfig.upstreamProviders`',
  },
  {
    reasons: ['AuthzPrimaryUpstreamProviderDeprecated', 'PrimaryUpstreamProviderIgnored'],
    means: 'the inline `primaryUpstreamProvider` is used, or means nothing on this kind',
    isWarning: true,
    step: 'use `authServerConfig.primaryUpstreamProvider`',
  },
  {
    reasons: ['AuthzUpstreamAutoSelected'],
    means: 'several upstreams and no `primaryUpstreamProvider`: policies read the claims of the first',
    isWarning: true,
    step: 'choose one',
  },
  {
    reasons: ['BackendsExcluded'],
    means:
      'condition `BackendsValidated`: a virtual server excludes backends with a broken reference or setting, or with a Secret or file that is missing in the pod; the running server treats them as unavailable',
    step: 'mend each backend that the message and `status.discoveredBackends` name',
  },
  {
    reasons: ['BackendsPending'],
    means: 'the pods run, and have not asked any backend yet',
    step: 'wait; `status.discoveredBackends` fills',
  },
  {
    reasons: ['CABundleRefNotFound', 'CABundleRefInvalid'],
    means: 'the ConfigMap with the certificate authority, or its key, is missing',
    step: 'create or mend the ConfigMap; its key is `ca.crt` unless you named another',
  },
  {
    reasons: ['CompositeToolRefNotFound', 'CompositeToolRefInvalid'],
    means: 'a workflow definition is missing or invalid',
    step: 'create it, or mend what its `status.validationErrors` lists',
  },
  {
    reasons: ['ConversionFailed'],
    means: 'a strategy cannot be turned into runtime form; that backend is left out',
    step: 'mend the strategy that the message names',
  },
  {
    reasons: ['EmbeddingServerNotFound', 'EmbeddingServerNotReady'],
    means: "the optimizer's embedding service is not there, or still loading",
    step: 'wait, or look at the EmbeddingServer',
  },
  {
    reasons: ['GroupRefNotFound', 'GroupRefNotReady'],
    means: 'the MCPGroup is missing or has an error',
    step: 'create it in the same namespace',
  },
  {
    reasons: ['HeaderSecretNotFound'],
    means: "a forwarded header's Secret or key is missing",
    step: 'create or mend the Secrets: the message names all of them',
  },
  {
    reasons: ['InvalidExternalAuthConfig'],
    means: 'the MCPExternalAuthConfig is there and not valid',
    step: 'mend that object: its own condition `Valid` says why',
  },
  {
    reasons: ['NoRoutableBackends', 'SomeBackendsUnhealthy'],
    means: 'backends do not answer their health checks',
    step: 'look at the backends: `status.discoveredBackends` says which and why',
  },
  {
    reasons: ['OIDCConfigRefNotFound', 'OIDCConfigRefNotValid'],
    means: 'the MCPOIDCConfig is missing or invalid',
    step: 'mend that object: its own condition `Valid` says why',
  },
  {
    reasons: ['ReferencesNotReady'],
    means: 'an MCPServerEntry waits for what it refers to',
    step: 'mend what the other conditions name',
  },
  {
    reasons: ['SecretNotFound'],
    means: 'a Secret or key is missing',
    step: 'create or mend the Secret: the message names it and the key',
  },
  {
    reasons: ['AccessRefused'],
    means: 'condition `Attached`: the API server refuses the proxy what attaching needs',
    step: 'look at the Role and RoleBinding of the proxy; does Metacontroller hold these rights?',
  },
  {
    reasons: ['SubjectProviderUnknown'],
    means: '`subjectProviderName` names no upstream provider',
    step: 'mend `subjectProviderName`',
  },
  {
    reasons: ['WebhookConfigRefNotFound', 'WebhookConfigRefInvalid'],
    means: 'the MCPWebhookConfig is missing or invalid',
    step: 'mend that object: its own condition `Valid` says why',
  },
  {
    reasons: ['TelemetryConfigRefNotFound', 'TelemetryConfigRefInvalid'],
    means: 'the MCPTelemetryConfig is missing or invalid',
    step: 'mend that object: its own condition `Valid` says why',
  },
  {
    reasons: ['TLSSecretNotFound'],
    means:
      'the Secret of `spec.tls.secretName` (condition `TLSReady`) or of `spec.exposure.ingress.tlsSecretName` (`ExposureReady`), or one of its keys, is missing',
    step: 'create it, or have cert-manager make it',
  },
  {
    reasons: ['TLSSecretInvalid'],
    means: 'what the Secret of `spec.tls.secretName` holds cannot be served',
    step: 'mend the Secret: the message names the key and says why; see [tls.md](tls.md)',
  },
  {
    reasons: ['ToolConfigNotFound', 'ToolConfigNotValid'],
    means:
      'the MCPToolConfig is missing or invalid; a virtual server leaves out the backend that it is for, or only the tool that an override gives a reserved name, and serves the rest',
    step: 'mend the MCPToolConfig: the message says what is wrong and names the tool that is left out',
  },
  {
    reasons: ['UnknownBackend'],
    means:
      'a VirtualMCPServer has settings for a backend that is not a member of its group: without its credentials, timeout or filter the one that was meant is used all the same',
    step: 'mend the name: the message names each field and the name that was probably meant',
  },
]
