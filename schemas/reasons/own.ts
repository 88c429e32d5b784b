/** Reasons that are in the object itself, or in its pods. */
import type { ReasonRow } from './row.ts'

export const ownReasons: readonly ReasonRow[] = [
  {
    reasons: ['AmbiguousName'],
    means:
      "two backends' names differ in punctuation only (`a-b`, `a.b`), and one has `headerForward`, which needs a name of its own",
    step: 'rename one of them',
  },
  {
    reasons: ['ChildConflict'],
    means:
      'condition `ChildrenOwned`: an object under the name of a child, of whatever kind, belongs to somebody else',
    step: 'rename the resource, or remove what holds the name',
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
    means: 'the spec is refused',
    step: 'mend the spec: the message lists every error by path',
  },
  {
    reasons: ['ConfigTooLarge'],
    means: 'a generated object would be too large for the API server',
    step: 'use fewer backends, or smaller policies or annotations',
  },
  {
    reasons: ['MemoryStorageWithReplicas'],
    means: 'several replicas of an authorization server keep clients, codes and tokens in their own memory',
    isWarning: true,
    step: 'set `storage` of type `redis`',
  },
  {
    reasons: ['NoOutgoingStrategy'],
    means: 'a backend refers to a configuration of type `embeddedAuthServer`',
    step: 'name another type: this is no way to sign in to a backend, which is called without credentials',
  },
  {
    reasons: ['DeploymentFailed', 'DeploymentNotReady'],
    means: 'the pods are not ready',
    step: 'look at the pods with `kubectl describe pod`; the reason of the container is in the message',
  },
  {
    reasons: ['EntryNotValid'],
    means: 'an MCPServerEntry with `headerForward` is not valid; it is left out',
    step: 'mend that object: its own condition `Valid` says why',
  },
  {
    reasons: ['DuplicateMemberName'],
    means: 'members of different kinds have one name',
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
      'several replicas of an authorization server make signing keys of their own, and refuse the tokens of one another',
    isWarning: true,
    step: 'set what the message names, from a Secret',
  },
  {
    reasons: ['EnterpriseRequired'],
    means: 'type `obo` without its handler',
    step: 'set `GATEHOUSE_ENABLE_OBO=true` on hooks and runtime',
  },
  {
    reasons: ['InvalidPodTemplateSpec'],
    means: '`podTemplateSpec` cannot be merged',
    step: 'mend `podTemplateSpec`: the message names the path',
  },
  {
    reasons: ['MultiUpstreamNotSupported'],
    means: 'several upstream providers on a single-server kind',
    step: 'leave one provider, or use a VirtualMCPServer, which takes several',
  },
  {
    reasons: ['PartlyEnforced'],
    means: 'a permission profile names hosts or paths, which a NetworkPolicy cannot enforce',
    isWarning: true,
    step: 'know that these are not enforced: the message names them',
  },
  {
    reasons: ['PermissionProfileInvalid'],
    means: 'the permission profile is missing or not JSON',
    step: 'create or mend it: the message names the ConfigMap and key',
  },
  {
    reasons: ['ProblemsReported'],
    means:
      'condition `ServesWithoutProblems` (present only then): the running pods report what is wrong: a backend that is down, a store that cannot be reached, a changed file that was refused, names in conflict',
    step: 'do what the message says of each problem, as `/status` and the console do',
  },
  {
    reasons: ['RecreateRequired'],
    means: 'a field changed that Kubernetes does not allow to change',
    step: 'delete and create the resource again',
  },
  {
    reasons: ['RemoteURLInvalid'],
    means: 'the address is refused',
    step: 'private addresses need `allowPrivateEndpoint`; metadata and loopback addresses are never allowed',
  },
  {
    reasons: ['RolloutStalled'],
    means: 'the new pods do not become ready, and those of the version before serve',
    step: 'look at the newest pods; mend the manifest, or take the last change back',
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
    means: 'a stdio server has no command, and this installation attaches to no container',
    step: 'give a `command` to the container `mcp` of `podTemplateSpec.spec.containers`, or install with `stdio.attach=true`',
  },
  {
    reasons: ['CrashLoopBackOff'],
    means: 'a container ends as soon as it is started; condition `Attached`: that of a stdio server',
    step: 'read `kubectl logs POD -c CONTAINER --previous`; a stdio server must speak MCP on its standard streams',
  },
  {
    reasons: ['StdioTransportCapAt1'],
    means: 'a stdio server runs one replica whatever was asked',
    isWarning: true,
    step: '',
  },
  {
    reasons: ['DependencyCycle', 'TemplateInvalid', 'WorkflowNotReady'],
    means: "a workflow's template does not parse, or the workflow has errors",
    step: 'mend the workflow: `status.validationErrors` lists them',
  },
  {
    reasons: ['GatewayAPINotEnabled'],
    means: '`spec.exposure.gateway` where the installation makes no HTTPRoutes',
    step: '[exposure.md](exposure.md) says how to enable them, or use `spec.exposure.ingress`',
  },
  {
    reasons: ['HostnameClaimed'],
    means: 'an older server of the namespace has this `spec.exposure.hostname`',
    step: 'take another host name, or take it from the other one',
  },
  {
    reasons: ['PublicURLMismatch'],
    means: 'clients are told a URL of another host than `spec.exposure.hostname`',
    step: 'leave `resourceUrl` out, or make it and the issuer URLs of that host',
  },
]
