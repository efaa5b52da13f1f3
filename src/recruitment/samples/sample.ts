import type { Channel, Stage } from '../events/fields.ts';

/** The brand of the samples, which is not stored. */
export const sample_brand_id = 'sample_fbr_01';

/** Returns whether an id is one that a sample has, or could have. */
export const isSample = (prospect_id: string): boolean => prospect_id.startsWith('sample_fdi_');

interface Sample {
  id: string;
  channel: Channel;
  key: string;
  name: string;
  url: string;
  description: string;
  country_code: string;
  language_code: string;
  timezone: string;
  followers: number | null;
  score: number;
  stage: Stage;
}

const place = (country_code: string, language_code: string, timezone: string) => ({
  ...{ country_code, language_code, timezone },
});

/** In the order of their ids. Their domains are reserved for documentation: no mail ever reaches one. */
export const samples: Sample[] = [
  {
    ...{ id: 'sample_fdi_01', channel: 'website', key: 'bakingblog.example', name: 'The Baking Blog', stage: 'found' },
    ...{ url: 'https://bakingblog.example/', description: 'Recipes and tests of kitchen appliances.', score: 86 },
    ...{ ...place('US', 'en', 'America/New_York'), followers: null },
  },
  {
    ...{ id: 'sample_fdi_02', channel: 'youtube', key: 'gearreview', name: 'Gear Review', stage: 'found' },
    ...{ url: 'https://www.youtube.com/@gearreview', description: 'Weekly reviews of outdoor equipment.', score: 91 },
    ...{ ...place('GB', 'en', 'Europe/London'), followers: 184_000 },
  },
  {
    ...{ id: 'sample_fdi_03', channel: 'podcast', key: 'foundershour.example', name: 'Founders Hour', stage: 'found' },
    ...{ url: 'https://foundershour.example/', description: 'Interviews with founders of small firms.', score: 74 },
    ...{ ...place('CA', 'en', 'America/Toronto'), followers: 12_500 },
  },
  {
    ...{ id: 'sample_fdi_04', channel: 'newsletter', key: 'growthnotes.example', name: 'Growth Notes', stage: 'found' },
    ...{ url: 'https://growthnotes.example/', description: 'A weekly letter on marketing for shops.', score: 82 },
    ...{ ...place('US', 'en', 'America/Los_Angeles'), followers: 41_000 },
  },
  {
    ...{ id: 'sample_fdi_05', channel: 'instagram', key: 'studio.keramik', name: 'Studio Keramik', stage: 'found' },
    ...{ url: 'https://www.instagram.com/studio.keramik/', description: 'Handmade ceramics.', score: 58 },
    ...{ ...place('DE', 'de', 'Europe/Berlin'), followers: 23_800 },
  },
  {
    ...{ id: 'sample_fdi_06', channel: 'tiktok', key: 'cuisinerapide', name: 'Cuisine Rapide', stage: 'found' },
    ...{ url: 'https://www.tiktok.com/@cuisinerapide', description: 'Recettes en une minute.', score: 67 },
    ...{ ...place('FR', 'fr', 'Europe/Paris'), followers: 310_000 },
  },
  {
    ...{ id: 'sample_fdi_07', channel: 'x', key: 'devtooldaily', name: 'Dev Tool Daily', stage: 'found' },
    ...{ url: 'https://x.com/devtooldaily', description: 'A tool for developers each day.', score: 63 },
    ...{ ...place('NL', 'en', 'Europe/Amsterdam'), followers: 57_400 },
  },
  {
    ...{ id: 'sample_fdi_08', channel: 'website', key: 'sparfuchs.example', name: 'Sparfuchs', stage: 'contacted' },
    ...{ url: 'https://sparfuchs.example/', description: 'Gutscheine und Angebote.', score: 49 },
    ...{ ...place('DE', 'de', 'Europe/Berlin'), followers: null },
  },
  {
    ...{ id: 'sample_fdi_09', channel: 'website', key: 'viajeligero.example', name: 'Viaje Ligero', stage: 'replied' },
    ...{ url: 'https://viajeligero.example/', description: 'Viajar con poco equipaje.', score: 71 },
    ...{ ...place('ES', 'es', 'Europe/Madrid'), followers: null },
  },
  {
    ...{ id: 'sample_fdi_10', channel: 'youtube', key: 'homelabbuilds', name: 'Home Lab Builds', stage: 'interested' },
    ...{ url: 'https://www.youtube.com/@homelabbuilds', description: 'Servers for the home.', score: 88 },
    ...{ ...place('AU', 'en', 'Australia/Sydney'), followers: 96_200 },
  },
  {
    ...{
      id: 'sample_fdi_11',
      channel: 'newsletter',
      key: 'nordicdesign.example',
      name: 'Nordic Design',
      stage: 'found',
    },
    ...{ url: 'https://nordicdesign.example/', description: 'Furniture and light from the north.', score: 77 },
    ...{ ...place('SE', 'sv', 'Europe/Stockholm'), followers: 18_900 },
  },
  {
    ...{ id: 'sample_fdi_12', channel: 'other', key: 'makerforum.example', name: 'Maker Forum', stage: 'found' },
    ...{ url: 'https://makerforum.example/', description: 'A forum for people who build things.', score: 55 },
    ...{ ...place('US', 'en', 'America/Chicago'), followers: 8_300 },
  },
];
