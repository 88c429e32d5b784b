import { imageReference } from '../../schemas/index.ts'

/**
 * Settings for an installation, shared by all hooks. The caller passes the settings in, because the same hooks also run
 * outside the server, in `gatehouse render` and in `gatehouse dev`.
 */
export interface HookSettings {
  /** The image for virtual servers, proxies and the stdio bridge. */
  readonly runtimeImage: string
  /** Version of this build, for telemetry only. */
  readonly version: string
  /**
   * Enables the on-behalf-of handler (GATEHOUSE_ENABLE_OBO). Otherwise, objects of type `obo` get Valid=False with
   * reason EnterpriseRequired.
   */
  readonly enableObo: boolean
  /**
   * Session store for resources that do not configure a store. An explicit `memory` in the resource takes precedence.
   */
  readonly defaultRedis?: DefaultRedis
  /** Pull secrets for every generated pod and service account, listed after the resource's own secrets. */
  readonly imagePullSecrets: readonly string[]
  /** Lets the platform assign numeric user IDs. */
  readonly openshift: boolean
  /** True when servers run local commands instead of images (`gatehouse dev`), so images are not inspected. */
  readonly localCommands: boolean
  /** Allows loopback addresses in an MCPServerEntry (`gatehouse dev`). A pod could never reach such an address. */
  readonly allowLoopback: boolean
  /** True when the Gateway API is installed and Metacontroller manages HTTPRoutes (GATEHOUSE_GATEWAY_API). */
  readonly gatewayApi: boolean
  /** Allows proxies to attach to stdio servers that have no command (GATEHOUSE_STDIO_ATTACH). */
  readonly stdioAttach: boolean
  /** The cluster's DNS suffix. */
  readonly clusterDomain: string
}

/** Settings that affect the validation of a single object. */
export type CheckSettings = Pick<HookSettings, 'enableObo'> & Partial<Pick<HookSettings, 'allowLoopback'>>

export interface DefaultRedis {
  /** Address of the store, in the form host:port. */
  readonly address: string
  /** Name of a Secret in each resource's namespace. Omit this field for a store without a password. */
  readonly secretName?: string
  /** Key of the password in the Secret. */
  readonly secretKey?: string
}

/** Returns the settings with all defaults. */
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

/** Settings for the command line: the defaults, with local commands and the Gateway API enabled. */
export const defaultSettings: HookSettings = hookSettings({
  runtimeImage: imageReference('gatehouse', 'latest'),
  version: 'dev',
  localCommands: true,
  gatewayApi: true,
})
