/**
 * What an installation decides once, for all hooks. Passed in, never read from the environment, so that the same hooks
 * run in the server, in `gatehouse render` and in `gatehouse dev`.
 */
export interface HookSettings {
  /** Image of the runtime: virtual servers, proxies, the stdio bridge. */
  readonly runtimeImage: string
  /** Version of this build; only telemetry sees it. */
  readonly version: string
  /** Ships the on-behalf-of handler (GATEHOUSE_ENABLE_OBO). Without it type obo is Valid=False, EnterpriseRequired. */
  readonly enableObo: boolean
  /** Session store for resources that name none. Explicit `memory` in the resource wins. */
  readonly defaultRedis?: DefaultRedis
  /** Added to every generated pod and service account, after the resource's own. */
  readonly imagePullSecrets: readonly string[]
  /** Leaves numeric user ids to the platform. */
  readonly openshift: boolean
  /** Servers run local commands in place of their images (`gatehouse dev`), so no image has to be looked into. */
  readonly localCommands: boolean
  /** An MCPServerEntry may name a server on the loopback interface (`gatehouse dev`), which a pod never reaches. */
  readonly allowLoopback: boolean
  /** The Gateway API is installed, and Metacontroller manages HTTPRoutes (GATEHOUSE_GATEWAY_API). */
  readonly gatewayApi: boolean
  /** Proxies may attach to stdio servers that have no command (GATEHOUSE_STDIO_ATTACH). */
  readonly stdioAttach: boolean
  /** DNS suffix of the cluster. */
  readonly clusterDomain: string
}

/** What the checks of one object depend on. */
export type CheckSettings = Pick<HookSettings, 'enableObo'> & Partial<Pick<HookSettings, 'allowLoopback'>>

export interface DefaultRedis {
  /** host:port. */
  readonly address: string
  /** Secret in the namespace of each resource; left out: no password. */
  readonly secretName?: string
  /** Key in that Secret. */
  readonly secretKey?: string
}

/** Fills in what an installation usually leaves open. */
export function hookSettings(
  given: Pick<HookSettings, 'runtimeImage' | 'version'> & Partial<HookSettings>,
): HookSettings {
  return {
    enableObo: false,
    imagePullSecrets: [],
    openshift: false,
    localCommands: false,
    allowLoopback: false,
    gatewayApi: false,
    stdioAttach: true,
    clusterDomain: 'cluster.local',
    ...given,
  }
}

/** Settings for the command line: those of an installation that decided nothing, and servers may run local commands. */
export const defaultSettings: HookSettings = hookSettings({
  runtimeImage: 'ghcr.io/gatehouse-dev/gatehouse:latest',
  version: 'dev',
  localCommands: true,
  gatewayApi: true,
})
