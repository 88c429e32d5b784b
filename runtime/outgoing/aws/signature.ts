/** Re-exports the signing library, so that it is loaded with the first signed request. */
export { SignatureV4 } from '@smithy/signature-v4'
