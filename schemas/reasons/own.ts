/** Reasons about the object itself or its pods. */
import type { ReasonRow } from './row.ts'

export const ownReasons: readonly ReasonRow[] = [
  {
    reasons: ['AmbiguousName'],
    means:
      "two backends' names differ in punctuation only (`a-b`, `a.b`), and one has `headerForward`, which needs a unique name",
    step: 'rename one of them',
  },
  {
    reasons: ['ChildConflict'],
    means: 'condition `ChildrenOwned`: an object with the name of a child, of any kind, has another owner',
    step: 'rename the resource, or remove the other object',
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
    means: 'a generated object would be too large for the API server',
    step: 'use fewer backends, or smaller policies or annotations',
  },
  {
    reasons: ['MemoryStorageWithReplicas'],
    means: 'several replicas of an authorization server keep clients, codes and tokens in memory',
    isWarning: true,
    step: 'set `storage` of type `redis`',
  },
  {
    reasons: ['NoOutgoingStrategy'],
    means: 'a backend refers to a configuration of type `embeddedAuthServer`',
    step: 'use another type: this type does not authenticate to a backend, so it is called without credentials',
  },
  {
    reasons: ['DeploymentFailed', 'DeploymentNotReady'],
    means: 'the pods are not ready',
    step: 'check the pods with `kubectl describe pod`; the message contains the reason of the container',
  },
  {
    reasons: ['EntryNotValid'],
    means: 'an MCPServerEntry with `headerForward` is invalid and excluded',
    step: 'fix that object: its condition `Valid` contains the reason',
  },
  {
    reasons: ['DuplicateMemberName'],
    means: 'members of different kinds have the same name',
    step: 'rename all but one: only the first of MCPServer, MCPRemoteProxy, MCPServerEntry is used',
  },
  {
    reasons: ['EmbeddingServiceOverridden'],
    means: '`embeddingServerRef` decides, `config.optimizer.embeddingService` is ignored',
    isWarning: true,
    step: 'remove one',
  },
  {
    reasons: ['EphemeralKeysWithReplicas'],
    means:
      'several replicas of an authorization server each generate a signing key, and reject the tokens of the other replicas',
    isWarning: true,
    step: 'set the fields in the message, from a Secret',
  },
  {
    reasons: ['EnterpriseRequired'],
    means: 'type `obo` without `GATEHOUSE_ENABLE_OBO`',
    step: 'set `GATEHOUSE_ENABLE_OBO=true` on hooks and runtime',
  },
  {
    reasons: ['InvalidPodTemplateSpec'],
    means: '`podTemplateSpec` cannot be merged',
    step: 'fix `podTemplateSpec`: the message contains the path',
  },
  {
    reasons: ['MultiUpstreamNotSupported'],
    means: 'several upstream providers on a single-server kind',
    step: 'keep one provider, or use a VirtualMCPServer, which supports several',
  },
  {
    reasons: ['PartlyEnforced'],
    means: 'a permission profile names hosts or paths, which a NetworkPolicy cannot enforce',
    isWarning: true,
    step: 'check that this is acceptable: the message lists what is not enforced',
  },
  {
    reasons: ['PermissionProfileInvalid'],
    means: 'the permission profile is missing or not valid JSON',
    step: 'create or fix it: the message contains the ConfigMap and key',
  },
  {
    reasons: ['ProblemsReported'],
    means:
      'condition `ServesWithoutProblems` (present only then): the running pods report problems: a backend that is down, an unreachable store, a changed file that was rejected, conflicting names',
    step: 'follow the step in the message for each problem; `/status` and the console show the same steps',
  },
  {
    reasons: ['RecreateRequired'],
    means: 'an immutable field was changed',
    step: 'delete and recreate the resource',
  },
  {
    reasons: ['RemoteURLInvalid'],
    means: 'the address is not allowed',
    step: 'private addresses require `allowPrivateEndpoint`; metadata and loopback addresses are never allowed',
  },
  {
    reasons: ['RolloutStalled'],
    means: 'the new pods do not become ready, so pods of the previous version serve',
    step: 'check the newest pods; fix the manifest, or revert the last change',
  },
  {
    reasons: ['SessionStorageMissingForReplicas'],
    means: 'several replicas, sessions in memory',
    isWarning: true,
    step: 'see [redis.md](redis.md)',
  },
  {
    reasons: ['LocalCommandMissing'],
    means: 'a stdio server runs without a cluster, for example in `gatehouse dev`, and has no local command',
    step: 'annotate it with `gatehouse.dev/local-command: COMMAND`',
  },
  {
    reasons: ['AttachDisabled'],
    means: 'a stdio server has no command, and this installation does not attach to containers',
    step: 'give a `command` to the container `mcp` of `podTemplateSpec.spec.containers`, or install with `stdio.attach=true`',
  },
  {
    reasons: ['CrashLoopBackOff'],
    means:
      'a container exits right after it starts; in the condition `Attached`, the container of a stdio server',
    step: 'read `kubectl logs POD -c CONTAINER --previous`; a stdio server must speak MCP on its standard streams',
  },
  {
    reasons: ['StdioTransportCapAt1'],
    means: 'a stdio server always runs one replica, regardless of `replicas`',
    isWarning: true,
    step: '',
  },
  {
    reasons: ['DependencyCycle', 'TemplateInvalid', 'WorkflowNotReady'],
    means: 'a template in the workflow does not parse, or the workflow has errors',
    step: 'fix the workflow: `status.validationErrors` lists them',
  },
  {
    reasons: ['GatewayAPINotEnabled'],
    means: '`spec.exposure.gateway` is set, but the installation does not create HTTPRoutes',
    step: 'enable them as described in [exposure.md](exposure.md), or use `spec.exposure.ingress`',
  },
  {
    reasons: ['HostnameClaimed'],
    means: 'an older server of the namespace has the same `spec.exposure.hostname`',
    step: 'use another host name, or remove it from the other server',
  },
  {
    reasons: ['PublicURLMismatch'],
    means: '`resourceUrl` has another host than `spec.exposure.hostname`',
    step: 'remove `resourceUrl`, or use that host in it and in the issuer URLs',
  },
]
