/** Type `basicAuth`: user name and password (RFC 7617). */
import { definedFields } from '../children/defined.ts'
import { type ExternalAuthModule, definedItems } from './module.ts'

export const basicAuth: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ basicAuth: config }) => definedItems([config?.usernameSecretRef, config?.passwordSecretRef]),
  toRuntime({ basicAuth: config }, { needs, variable }) {
    if (!config) return { value: undefined }
    const { username, usernameSecretRef, passwordSecretRef } = config
    const settings = definedFields({
      username,
      usernameEnv:
        usernameSecretRef && needs.secretEnv(`GATEHOUSE_BASIC_AUTH_USERNAME_${variable}`, usernameSecretRef),
      passwordEnv: needs.secretEnv(`GATEHOUSE_BASIC_AUTH_PASSWORD_${variable}`, passwordSecretRef),
    })
    return { value: { type: 'basic_auth', basicAuth: settings } }
  },
}
