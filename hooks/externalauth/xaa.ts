/**
 * Type `xaa`: cross-application access. Requires an explicit provider for the ID token when there are several
 * upstreams.
 */
import { failed } from '../sync/conditions.ts'
import {
  credentialFiles,
  type ExternalAuthModule,
  definedItems,
  noIdToken,
  subjectProvider,
} from './module.ts'
import { definedFields } from '../base/kube.ts'
import { clientAuthPart } from '../runtime-config/client-auth.ts'

export const xaa: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ xaa: config }) =>
    definedItems([
      config?.idpClientSecretRef,
      config?.targetClientSecretRef,
      config?.idpClientAuth?.privateKeyRef,
      config?.targetClientAuth?.privateKeyRef,
    ]),
  rereadSecrets: ({ xaa: config }) =>
    definedItems([config?.idpClientAuth?.privateKeyRef, config?.targetClientAuth?.privateKeyRef]),
  toRuntime({ xaa: config }, target) {
    if (!config) return { value: undefined }
    const { needs, variable, upstreams } = target
    if (!config.subjectProviderName && (upstreams ?? []).length > 1) {
      return failed(
        'AmbiguousSubjectProvider',
        `subjectProviderName must select one of ${(upstreams ?? []).join(', ')} for the id token`,
      )
    }
    if (!config.subjectProviderName && upstreams?.length === 0) {
      return failed('SubjectProviderUnknown', noIdToken('xaa'))
    }
    const provider = subjectProvider(config.subjectProviderName, target)
    if (provider.failure) return provider
    const { idpClientSecretRef, targetClientSecretRef, idpClientAuth, targetClientAuth, ...rest } = config
    const settings = definedFields({
      ...rest,
      idpClientSecretEnv:
        idpClientSecretRef &&
        needs.secretEnv(`GATEHOUSE_XAA_IDP_CLIENT_SECRET_${variable}`, idpClientSecretRef),
      targetClientSecretEnv:
        targetClientSecretRef &&
        needs.secretEnv(`GATEHOUSE_XAA_TARGET_CLIENT_SECRET_${variable}`, targetClientSecretRef),
      idpClientAuth: clientAuthPart(idpClientAuth, 'idp', config.idpTokenUrl, credentialFiles(target)),
      targetClientAuth: clientAuthPart(
        targetClientAuth,
        'target',
        config.targetAudience,
        credentialFiles(target),
      ),
      subjectProviderName: provider.value,
    })
    return { value: { type: 'xaa', xaa: settings } }
  },
}
