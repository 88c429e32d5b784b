/** Reasons about the object itself or its pods. */
/** A row in the table of reasons. */
export interface ReasonRow {
  readonly reasons: readonly string[]
  /** Description of the problem, in Markdown. */
  readonly means: string
  /** The next step, in Markdown; empty when no action is needed. */
  readonly step: string
  /** True when nothing is broken, but a setting has no effect or a surprising effect. */
  readonly isWarning?: boolean
}

export const ownReasons: readonly ReasonRow[] = [
  {
    reasons: ['AmbiguousName'],
    means:
      "two backends' names differ only in punctuation (`a-b`, `a.b`), and one of them has `headerForward`, which requires a unique name",
    step: 'rename one of the backends',
  },
  {
    reasons: ['ChildConflict'],
    means:
      'condition `ChildrenOwned`: an object that Gatehouse would create already exists, and belongs to another owner',
    step: 'rename the resource, or delete the existing object',
  },
  {
    reasons: [
      'ConfigInvalid',
      'ConfigurationInvalid',
      'ValidationFailed',
      'InvalidConfig',
      'Invalid',
      'SchemaInvalid',
    ],
    means: 'the spec is invalid',
    step: 'fix the spec: the message lists every error by path',
  },
  {
    reasons: ['ConfigTooLarge'],
    means: 'an object that Gatehouse would create is too large for the API server',
    step: 'use fewer backends, or shorter policies or annotations',
  },
  {
    reasons: ['MemoryStorageWithReplicas'],
    means:
      'an authorization server with several replicas keeps clients, codes and tokens in memory; with declared clients, this is an error',
    isWarning: true,
    step: 'set `storage` to type `redis`',
  },
  {
    reasons: ['PublishedNameClaimed'],
    means: 'several virtual servers have the same `spec.publish.name`; catalogues list the oldest one',
    isWarning: true,
    step: 'change `spec.publish.name` of the other servers: the message lists the names',
  },
  {
    reasons: ['TooManyServers'],
    means: 'a catalogue selects more published servers than it can list',
    isWarning: true,
    step: 'select fewer servers with `spec.selector`, and add another MCPCatalogue',
  },
  {
    reasons: ['NoOutgoingStrategy'],
    means: 'a backend refers to a configuration of type `embeddedAuthServer`',
    step: 'use another type: `embeddedAuthServer` does not authenticate to backends, so Gatehouse calls the backend without credentials',
  },
  {
    reasons: ['DeploymentFailed', 'DeploymentNotReady'],
    means: 'the pods are not ready',
    step: 'check the pods with `kubectl describe pod`; the message contains the reason from the container',
  },
  {
    reasons: ['DocumentInvalid'],
    means:
      'the OpenAPI document of an MCPOpenAPIServer is rejected; virtual servers keep the tools of the last valid document',
    step: 'fix the document: the message contains the rule. Check it with `gatehouse openapi FILE`',
  },
  {
    reasons: ['DocumentNotFound'],
    means: 'the ConfigMap with the OpenAPI document, or its key, is missing',
    step: 'create or fix the ConfigMap',
  },
  {
    reasons: ['EntryNotValid'],
    means: 'an MCPServerEntry with `headerForward`, or an MCPOpenAPIServer, is invalid and excluded',
    step: 'fix that object: its `Valid` or `Ready` condition gives the reason',
  },
  {
    reasons: ['DuplicateMemberName'],
    means: 'group members of different kinds have the same name',
    step: 'rename all but one of the members: only the first of MCPServer, MCPRemoteProxy, MCPServerEntry, MCPOpenAPIServer is used',
  },
  {
    reasons: ['EmbeddingServiceOverridden'],
    means: '`embeddingServerRef` takes precedence, so `config.optimizer.embeddingService` is ignored',
    isWarning: true,
    step: 'remove one of the two settings',
  },
  {
    reasons: ['EphemeralKeysWithReplicas'],
    means:
      'several replicas of an authorization server each generate a signing key, and reject tokens from the other replicas',
    isWarning: true,
    step: 'set the fields that the message names, with values from a Secret',
  },
  {
    reasons: ['EnterpriseRequired'],
    means: 'the type is `obo`, but `GATEHOUSE_ENABLE_OBO` is not set',
    step: 'set `GATEHOUSE_ENABLE_OBO=true` on the hooks server and in the pods',
  },
  {
    reasons: ['InvalidPodTemplateSpec'],
    means: '`podTemplateSpec` cannot be merged',
    step: 'fix `podTemplateSpec`: the message contains the path',
  },
  {
    reasons: ['MultiUpstreamNotSupported'],
    means: 'a kind that runs a single server has several upstream providers',
    step: 'keep one provider, or use a VirtualMCPServer, which supports several',
  },
  {
    reasons: ['PartlyEnforced'],
    means: 'a permission profile contains hosts or paths, which a NetworkPolicy cannot enforce',
    isWarning: true,
    step: 'check that this limitation is acceptable: the message lists the rules that are not enforced',
  },
  {
    reasons: ['PermissionProfileInvalid'],
    means: 'the permission profile is missing or not valid JSON',
    step: 'create or fix the profile: the message contains the ConfigMap and key',
  },
  {
    reasons: ['ProblemsReported'],
    means:
      'condition `ServesWithoutProblems` (present only with this reason): the running pods report problems such as a backend that is down, an unreachable store, a rejected configuration change or conflicting names',
    step: 'follow the next step that the message gives for each problem; `/status` and the console show the same steps',
  },
  {
    reasons: ['RecreateRequired'],
    means: 'an immutable field was changed',
    step: 'delete and recreate the resource',
  },
  {
    reasons: ['BaseURLInvalid', 'RemoteURLInvalid'],
    means: 'the address is not allowed',
    step: 'private addresses require `allowPrivateEndpoint`; metadata and loopback addresses are never allowed',
  },
  {
    reasons: ['RolloutStalled'],
    means: 'the new pods are not becoming ready, so pods of the previous version are still serving',
    step: 'check the newest pods; fix the manifest, or revert the last change',
  },
  {
    reasons: ['SessionStorageMissingForReplicas'],
    means: 'the server has several replicas, but keeps sessions in memory',
    isWarning: true,
    step: 'see [redis.md](redis.md)',
  },
  {
    reasons: ['LocalCommandMissing'],
    means: 'a stdio server runs without a cluster, for example in `gatehouse dev`, and has no local command',
    step: 'add the annotation `gatehouse.dev/local-command: COMMAND`',
  },
  {
    reasons: ['AttachDisabled'],
    means: 'a stdio server has no command, and this installation does not attach to containers',
    step: 'set `command` for the `mcp` container in `podTemplateSpec.spec.containers`, or install with `stdio.attach=true`',
  },
  {
    reasons: ['CrashLoopBackOff'],
    means: 'a container keeps exiting (in the `Attached` condition: the container of a stdio server)',
    step: 'read the output of `kubectl logs POD -c CONTAINER --previous`; a stdio server must use MCP on its standard streams',
  },
  {
    reasons: ['StdioTransportCapAt1'],
    means: 'a stdio server always runs one replica, regardless of `replicas`',
    isWarning: true,
    step: '',
  },
  {
    reasons: ['DependencyCycle', 'TemplateInvalid', 'WorkflowNotReady'],
    means: 'a template in the workflow cannot be parsed, or the workflow has errors',
    step: 'fix the workflow: `status.validationErrors` lists them',
  },
  {
    reasons: ['GatewayAPINotEnabled'],
    means: '`spec.exposure.gateway` is set, but the installation does not create HTTPRoutes',
    step: 'enable HTTPRoutes as described in [exposure.md](exposure.md), or use `spec.exposure.ingress`',
  },
  {
    reasons: ['HostnameClaimed'],
    means: 'an older server in the namespace has the same `spec.exposure.hostname`',
    step: 'use another host name, or remove the host name from the other server',
  },
  {
    reasons: ['PublicURLMismatch'],
    means: 'the host in `resourceUrl` differs from `spec.exposure.hostname`',
    step: 'remove `resourceUrl`, or use `spec.exposure.hostname` in `resourceUrl` and in the issuer URLs',
  },
]

/** Reasons that Kubernetes sets on pods, containers and workloads. */
export const podReasons: readonly ReasonRow[] = [
  {
    reasons: ['ImagePullBackOff', 'ErrImagePull', 'ErrImageNeverPull', 'ImageInspectError'],
    means: 'the node cannot pull the image',
    step: 'check the image name and `imagePullSecrets`',
  },
  { reasons: ['InvalidImageName'], means: 'the image name is invalid', step: 'check `spec.image`' },
  {
    reasons: ['CreateContainerConfigError'],
    means: 'a Secret or ConfigMap that the container needs, or a key in it, is missing',
    step: 'check the Secrets and ConfigMaps that the server references',
  },
  {
    reasons: ['CreateContainerError', 'RunContainerError', 'ContainerCannotRun', 'StartError'],
    means: 'the container cannot be started; often, its command does not exist in the image',
    step: 'check `command` and `args`; the message contains the error from the node',
  },
  {
    reasons: ['OOMKilled'],
    means: 'the container used more memory than its limit',
    step: 'raise `resources.limits.memory` for the container',
  },
  {
    reasons: ['Unschedulable'],
    means: 'no node can run the pod',
    step: 'add nodes, free resources or lower the requests: the message lists the missing resources',
  },
  {
    reasons: ['Evicted'],
    means: 'the node evicted the pod, usually because it ran out of memory or disk space',
    step: 'set `resources.requests` to the actual usage, or free resources on the node',
  },
  {
    reasons: ['FailedMount', 'FailedAttachVolume'],
    means: 'a volume cannot be mounted',
    step: 'check the Secret, ConfigMap or claim named in the message',
  },
  {
    reasons: ['FailedCreate', 'ReplicaFailure'],
    means: 'the API server rejects the pods: a quota, a pod security level or an admission policy',
    step: 'fix the cause given in the message',
  },
  {
    reasons: ['ProgressDeadlineExceeded'],
    means: 'new pods did not become ready in time',
    step: 'check the newest pods; fix the manifest, or revert the last change',
  },
  {
    reasons: ['Unhealthy', 'ContainersNotReady'],
    means: 'the container runs, but its probe fails',
    step: "read the container's logs",
  },
]
