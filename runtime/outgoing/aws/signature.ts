/** Re-exports the signing library, so that it is loaded only for the first signed request. */
export { SignatureV4 } from '@smithy/signature-v4'
