/** Type `bearerToken`: a static token in the Authorization header. */
import { type ExternalAuthModule, definedItems } from './module.ts'

export const bearerToken: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ bearerToken: config }) => definedItems([config?.tokenSecretRef]),
  toRuntime({ bearerToken: config }, { needs, variable }) {
    if (!config) return { value: undefined }
    const tokenEnv = needs.secretEnv(`GATEHOUSE_BEARER_TOKEN_${variable}`, config.tokenSecretRef)
    return { value: { type: 'bearer_token', bearerToken: { tokenEnv } } }
  },
}
