/** A catalogue's references: the identity provider of its clients, and its policies. */
import type { SyncContext } from '../../sync/context.ts'
import { configReferences } from '../../references/reference.ts'
import { authzCondition, oidcCondition } from '../../references/resolve.ts'
import { sharedPolicies } from '../../runtime-config/authz.ts'
import type { PodNeeds } from '../../runtime-config/needs.ts'
import { needsAccountToken, oidcPart } from '../../runtime-config/oidc.ts'

interface CatalogueTarget {
  readonly context: SyncContext<'MCPCatalogue'>
  /** Collects the environment and volumes that the configuration needs. */
  readonly needs: PodNeeds
  /** URL of the protected resource, used when the OIDC reference does not set one. */
  readonly resource: string
}

const reference = configReferences<CatalogueTarget>()

export const catalogueReferences = {
  oidc: reference({
    field: 'spec.incomingAuth.oidcConfigRef',
    kind: 'MCPOIDCConfig',
    condition: oidcCondition,
    hash: 'oidcConfigHash',
    toConfig(config, field, { context: { namespace }, needs, resource: defaultResource }) {
      const clientSecretEnv = 'CATALOGUE_OIDC_CLIENT_SECRET'
      return {
        value: {
          oidc: oidcPart(config, field, { namespace, defaultResource, clientSecretEnv, needs }),
          accountToken: needsAccountToken(config),
        },
      }
    },
  }),
  authz: reference({
    field: 'spec.incomingAuth.authzConfigRef',
    kind: 'MCPAuthzConfig',
    condition: authzCondition,
    hash: 'authzConfigHash',
    toConfig: (config) => sharedPolicies(config),
  }),
} as const
